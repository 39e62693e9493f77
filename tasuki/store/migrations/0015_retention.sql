-- What is forgotten when its time is over (services/machines/retention.py).

-- The Map Run whose child an execution is: children are forgotten with it, not by themselves.
ALTER TABLE executions ADD COLUMN map_run INTEGER;
UPDATE executions SET map_run = (SELECT c.run FROM map_children c WHERE c.execution = executions.id)
WHERE id IN (SELECT c.execution FROM map_children c JOIN map_runs r ON r.id = c.run);

-- Those that ended, the longest ago first.
CREATE INDEX executions_ended ON executions (stopped_at) WHERE stopped_at IS NOT NULL AND map_run IS NULL;
