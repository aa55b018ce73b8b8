-- Pictures that a person waits for now. The job overtakes everything that is queued with a lower priority, the newest
-- item first. Workers that are busy with a long batch claim it within a moment.
--
--     sqlite3 worker.db < jobs/urgent.sql
.bail on
.timeout 60000
INSERT INTO jobs (name, priority, execution_order, options, variants, urls) VALUES (
    'urgent',
    90,
    'lifo',
    'retry-failed',
    'card=640x,webp',
    json_array(
        'https://example.com/breaking/1.jpg',
        'https://example.com/breaking/2.jpg'
    )
);
SELECT job, name, state, total FROM progress WHERE job = (SELECT max(id) FROM jobs WHERE name = 'urgent');
