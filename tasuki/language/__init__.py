"""The Amazon States Language as data. Pure: imports only `values`.

::

    parse ──┬── states ──┬── fields ──┬── payload ── intrinsics ── intrinsic_functions
            │            │            └── paths ──── path_steps, path_filters, path_functions, path_reasons
            │            ├── choice, waiting (timestamps), handlers, resources
            │            └── schema
            └── check
    definition   what comes out: the machine, its expressions compiled
    retry        which retrier or catcher, and how long to wait
    errors       what can be wrong with a definition, and with a run

A definition is read once. What a state needs at run time is a closure of a `Scope`.
"""
