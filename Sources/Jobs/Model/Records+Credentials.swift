// What is shown to people and written into files: a URL's user name and password stay in the database.

extension SourceRecord {
    public var withoutCredentials: SourceRecord {
        var record = self
        record.key = URLText.withoutCredentials(key)
        record.finalURL = finalURL.map(URLText.withoutCredentials)
        return record
    }
}

extension BlacklistEntry {
    public var withoutCredentials: BlacklistEntry {
        var entry = self
        entry.url = URLText.withoutCredentials(url)
        return entry
    }
}

extension ResultRow {
    public var withoutCredentials: ResultRow {
        var row = self
        row.url = URLText.withoutCredentials(url)
        return row
    }
}

// The same for a terminal, where what opens a URL is hidden as well.

extension SourceRecord {
    public func hidden(by redaction: Redaction) -> SourceRecord {
        var record = self
        record.key = redaction.shown(key)
        record.finalURL = finalURL.map(redaction.shown)
        return record
    }
}

extension BlacklistEntry {
    public func hidden(by redaction: Redaction) -> BlacklistEntry {
        var entry = self
        entry.url = redaction.shown(url)
        return entry
    }
}

extension ResultRow {
    public func hidden(by redaction: Redaction) -> ResultRow {
        var row = self
        row.url = redaction.shown(url)
        return row
    }
}
