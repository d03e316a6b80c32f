/**
 * Dates of the dashboard, in its language. In English the order and the clock are the reader's: somebody in Germany reads
 * `28 Nov 2026, 21:31`, somebody in the United States `Nov 28, 2026, 9:31 PM`.
 */

/** Returns the English locale for a reader of this language, which browsers may name in ways of their own: `en-US@posix`. */
export function englishFor(language: string): string {
  const reader = localeNamed(language);
  const { region = 'US' } = reader.maximize();
  const own = `en-${region}`;
  const is_there = new Intl.DateTimeFormat(own).resolvedOptions().locale === own;
  const english = is_there ? own : 'en-GB';
  const { hourCycle = 'h23' } = new Intl.DateTimeFormat(reader, { hour: 'numeric' }).resolvedOptions();
  return `${english}-u-ca-gregory-hc-${hourCycle}`;
}

function localeNamed(language: string): Intl.Locale {
  try {
    return new Intl.Locale(language);
  } catch {
    return new Intl.Locale('en-US');
  }
}

/** Times that are near: `3 minutes ago`. */
export const near_form = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** The language of the dashboard: its build names it in the line above. */
const { locale: language } = near_form.resolvedOptions();
const locale = language === 'en' ? englishFor(navigator.language) : `${language}-u-ca-gregory`;

/** A moment to the minute, in local time. */
export const minute_form = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });
/** To the second. */
export const second_form = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' });
/** A UTC day. */
export const day_form = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
/** A UTC day without its year, for charts. */
export const short_day_form = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', timeZone: 'UTC' });
/** A UTC month: `November 2026`. */
export const month_form = new Intl.DateTimeFormat(locale, { month: 'long', year: 'numeric', timeZone: 'UTC' });
