"""One file per rule. A rule is data (id, slug, docs) plus one pure function from a judgement to findings."""
