const iso = /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/;

/** Reads a time as ISO 8601; a date alone is its start, UTC. Undefined if it is none. */
export function isoTime(text: string): Date | undefined {
  const parts = iso.exec(text);
  if (!parts) return undefined;
  const days_in_month = new Date(Date.UTC(Number(parts[1]), Number(parts[2]), 0)).getUTCDate();
  if (Number(parts[3]) > days_in_month) return undefined; // Date would make 2 March of 30 February
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
