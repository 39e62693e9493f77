"""The memory of the house: units of work on a database that only this room knows."""
