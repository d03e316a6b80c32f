/**
 * Rows that a rule looks at one after the other, by the time at which they became what they are: a check that has a
 * mark looks only at those since. `rows`: as many at a time as a statement can look at within a second or two.
 */
export type Walk = { table: string; time: string; rows: number };

/**
 * A rule as one query: it returns a row for each violation. With a walk, the rows that it looks at are those with a
 * time above $1 and up to $2, which is infinity for the last of them.
 */
export type Rule = { name: string; sql: string; walk?: Walk };
