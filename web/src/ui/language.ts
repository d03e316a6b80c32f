import { own_path } from '../below.ts';

/** Languages of this build, English among them; `web/vite.config.ts` writes them here. */
declare const languages_built: readonly string[];

export const languages: readonly string[] = languages_built;

/** The language of this page. */
export const language = document.documentElement.lang;

const year_s = 31_536_000;

/** Names a language in its own words: `Polski`. */
export function languageName(code: string): string {
  const name = new Intl.DisplayNames([code], { type: 'language' }).of(code) ?? code;
  return name.slice(0, 1).toLocaleUpperCase(code) + name.slice(1);
}

/**
 * Loads the page again in this language, or in that of the browser. This browser remembers it for the pages before signing in; where it
 * takes no cookies, nothing happens, or the page would be loaded for ever.
 */
export function showIn(chosen: string | null): void {
  const parts = [
    `medley_language=${chosen ?? ''}`,
    `path=${own_path}/`,
    `max-age=${chosen === null ? 0 : year_s}`,
    'samesite=lax',
    ...(location.protocol === 'https:' ? ['secure'] : []),
  ];
  document.cookie = parts.join('; ');
  if (chosen === null || document.cookie.includes(`medley_language=${chosen}`)) location.reload();
}
