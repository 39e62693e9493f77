"""The interpreter of the States Language. Pure; one way in: `step`."""
