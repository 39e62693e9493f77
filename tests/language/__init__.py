"""The States Language: paths, templates, choices, retries, and every refusal."""
