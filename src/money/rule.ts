/**
 * The scan of a table in parts, in the order of a time after which its rows no longer change: a check that has a mark
 * reads only what came since. `rows`: the rows of a part, as many as a statement reads within a second or two.
 */
export type TableScan = { table: string; time: string; rows: number };

/**
 * A rule as one query: it returns a row for each violation. With a `scan`, it reads the rows of one part: those with a
 * time above $1 and up to $2, which is infinity for the last part.
 */
export type Rule = { name: string; sql: string; scan?: TableScan };
