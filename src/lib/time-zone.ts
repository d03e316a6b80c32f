/** Tells whether this is the name of a time zone, such as Europe/Warsaw. */
export function isTimeZone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

/** Returns the minute of the day, from 0 to 1439, that clocks of a time zone show. Throws RangeError for no time zone. */
export function minuteOfDay(at_ms: number, time_zone: string): number {
  const parts = formatOf(time_zone).formatToParts(at_ms);
  const value = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  return 60 * value('hour') + value('minute');
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}
