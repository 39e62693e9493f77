"""What decides about events: when (schedule expressions), which (event patterns), reshaped how (templates). Pure."""
