#pragma once

// libxml2's push parsers for XML and HTML. Reference: https://gnome.pages.gitlab.gnome.org/libxml2/html/
#include <libxml/HTMLparser.h>
#include <libxml/parser.h>

// A value that Swift cannot write, since it is a macro with a cast that Swift does not import.
static inline unsigned int cxml_sax2_magic(void) { return XML_SAX2_MAGIC; }
