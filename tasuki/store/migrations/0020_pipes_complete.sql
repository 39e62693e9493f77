-- Enrichment, and targets that answer later (services/pipes).

ALTER TABLE pipes ADD COLUMN enrichment_parameters TEXT NOT NULL DEFAULT '{}';

-- A call is a batch on its way: it waits for its enrichment, or for its target.
ALTER TABLE pipe_calls ADD COLUMN stage TEXT NOT NULL DEFAULT 'Target';  -- or 'Enrichment'
ALTER TABLE pipe_calls ADD COLUMN began INTEGER NOT NULL DEFAULT 0;      -- when its messages were received
ALTER TABLE pipe_calls ADD COLUMN name TEXT;                             -- of the execution that is to be started
ALTER TABLE pipe_calls ADD COLUMN revision TEXT NOT NULL DEFAULT '';
ALTER TABLE pipe_calls ADD COLUMN definition TEXT NOT NULL DEFAULT '';   -- the pipe, as it was when the batch set out
ALTER TABLE pipe_calls ADD COLUMN answer TEXT;                           -- of the enrichment: what is to be handed on
