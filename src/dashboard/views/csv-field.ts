/** One rule for files that the service writes and those that a page writes. */

const plain_number = /^-?\d+(?:\.\d+)?$/;

/**
 * The same within a text: a spreadsheet that takes another separator than the comma begins a cell after it, also
 * within quotes. A number alone is none.
 */
const formula_inside = /([,;\t|\r\n][\s\0]*)(?=[=+\-@＝＋－＠])(?!-?\d+(?:\.\d+)?\s*(?:[,;\t|\r\n]|$))/g;

/** Spreadsheets run a text that begins like a formula, also after spaces; an apostrophe keeps it a text. */
const like_formula = /^[\s\0]*[=+\-@＝＋－＠]|^[\t\r\n]/;

/** Writes a field of a CSV file (RFC 4180) that no spreadsheet runs as a formula. */
export function csvField(text: string): string {
  const safe = like_formula.test(text) && !plain_number.test(text) ? `'${text}` : text;
  const inert = safe.replaceAll(formula_inside, "$1'");
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}
