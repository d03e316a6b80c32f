/** One message and its translation: one text, or the forms for numbers in the order of the language. */
export type Entry = { context?: string; text: string; plural?: string; forms: string[]; comments: string[] };

export type Catalogue = { head: string; entries: Entry[] };

export function readPo(source: string): Catalogue;

export function writePo(catalogue: Catalogue): string;

export function keyOf(message: { text: string; plural?: string }): string;
