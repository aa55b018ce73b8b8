-- A list of URLs, with two renditions of each. Edit the list and run:
--
--     sqlite3 worker.db < jobs/list.sql
--
-- A job with the same dedupe_key that is not finished yet keeps a second one out.
.bail on
.timeout 60000
INSERT OR IGNORE INTO jobs (name, dedupe_key, variants, urls) VALUES (
    'list',
    'warm:list',
    'thumb=320x240,cover,webp,q80 card=640x,webp',
    json_array(
        'https://example.com/images/1.jpg',
        'https://example.com/images/2.jpg',
        'https://example.com/images/3.png'
    )
);
SELECT job, name, state, total FROM progress WHERE job = (SELECT max(id) FROM jobs WHERE dedupe_key = 'warm:list');
