/// Migration 16: what is wrong with a source of which something was made all the same.
///
/// It belongs to the bytes, as the other facts do.
extension Schema {
    static let damage = """
        ALTER TABLE source_facts ADD COLUMN damage TEXT;
        DROP VIEW results;
        CREATE VIEW results AS SELECT
            items.job AS job, items.id AS item, items.url AS url, items.state AS state, items.cached AS cached,
            renditions.name AS variant, renditions.format AS format, renditions.width AS width,
            renditions.height AS height, renditions.size AS size, renditions.blob AS blob,
            CASE WHEN blobs.dying = 0
                THEN 'blobs/sha256/' || substr(renditions.blob, 1, 2) || '/' || renditions.blob END AS path,
            items.class AS class, items.http_status AS http_status, items.message AS message,
            \(iso("items.finished_at")) AS finished_at,
            source_facts.dominant_colour AS dominant_colour, source_facts.blurhash AS blurhash,
            source_facts.thumbhash AS thumbhash,
            CASE WHEN source_facts.phash IS NOT NULL THEN printf('%016x', source_facts.phash) END AS phash,
            sources.format AS source_format, sources.width AS source_width, sources.height AS source_height,
            sources.frames AS frames, sources.has_alpha AS has_alpha,
            source_facts.damage AS damage
            FROM items
            LEFT JOIN renditions ON renditions.item = items.id
            LEFT JOIN blobs ON blobs.hash = renditions.blob
            LEFT JOIN source_facts ON source_facts.hash = items.source
            LEFT JOIN sources ON sources.key = (SELECT same.key FROM sources AS same WHERE same.hash = items.source LIMIT 1)
            WHERE items.state IN ('done', 'failed', 'cancelled');
        """
}
