-- The rows of a table of your own: here `products (id, image_url)` in the same file. For a table in another file, begin
-- with  ATTACH '/srv/shop/shop.db' AS shop;  and select from shop.products.
--
--     sqlite3 worker.db < jobs/from-table.sql
--
-- One transaction, so that no worker sees the job before its items. last_insert_rowid() stands in a subquery on purpose:
-- bare, it can be evaluated anew for every row, and the second item would land in the wrong job.
.bail on
.timeout 60000
BEGIN IMMEDIATE;
INSERT INTO jobs (name, variants) VALUES ('products', 'card=640x,webp thumb=160x160,cover,webp');
INSERT INTO items (job, url)
    SELECT (SELECT last_insert_rowid()), image_url FROM products
    WHERE image_url IS NOT NULL AND image_url <> '' ORDER BY id;
COMMIT;
SELECT job, name, state, total FROM progress WHERE job = (SELECT max(id) FROM jobs WHERE name = 'products');
