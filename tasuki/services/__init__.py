"""One room per AWS-shaped service, one floor plan: `api`, `model`, `queries`, `polls`, `errors`.

Rooms do not import each other; they meet in the `switchboard`. A room owns its tables.
"""
