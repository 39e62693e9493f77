-- The machines room: how large the variables of an open execution are (engine/variables.py).
ALTER TABLE executions ADD COLUMN variable_bytes INTEGER NOT NULL DEFAULT 0;
