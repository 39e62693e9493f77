"""One module per state type.

`enter(turn, frame, state)` takes a frame into a state and, where the state need not wait, out of it again.
`resume(turn, frame, state, event)` goes on with a state that waited; an event that no longer fits changes nothing.
Both leave the frame in the phase that says what it waits for, and raise `StatesError` when the state fails by itself.
"""
