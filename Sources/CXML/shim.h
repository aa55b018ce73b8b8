#pragma once

// libxml2's push parsers for XML and HTML. Reference: https://gnome.pages.gitlab.gnome.org/libxml2/html/
#include <libxml/HTMLparser.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>

// A value that Swift cannot write, since it is a macro with a cast that Swift does not import.
static inline unsigned int cxml_sax2_magic(void) { return XML_SAX2_MAGIC; }

// Drops the parser's bytes that were read. Newer versions do so themselves, and mark the function as deprecated.
static inline void cxml_shrink(xmlParserInputPtr _Nonnull input) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
    xmlParserInputShrink(input);
#pragma clang diagnostic pop
}
