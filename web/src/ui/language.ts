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

/** The name under which the browser remembers whose choice the cookie is: that of a person who signed in, or that of this browser, made on the page for it. */
const chooser_key = 'medley.language.chooser';

/**
 * Loads the page again in the language that a person has chosen, or in that of the browser. This browser remembers it
 * for the pages before signing in, until somebody signs in who has chosen none (`endOthersChoice`).
 */
export function showAsChosen(chosen: string | null): void {
  remember('person');
  showIn(chosen);
}

/** The same for whoever is before this browser and has not signed in: people without a choice of their own get it, too. */
export function showInBrowser(chosen: string): void {
  remember('browser');
  showIn(chosen);
}

/** Gives the page back to the browser if it is in the language of a person who used it before. */
export function endOthersChoice(): void {
  if (languageChooser() !== 'person' || !document.cookie.includes('medley_language=')) return;
  showAsChosen(null);
}

/** Does nothing where the browser takes no cookies, or the page would be loaded for ever. */
function showIn(chosen: string | null): void {
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

function remember(chooser: 'person' | 'browser'): void {
  try {
    localStorage.setItem(chooser_key, chooser);
  } catch {
    // A browser that keeps nothing has no cookie either.
  }
}

function languageChooser(): string | null {
  try {
    return localStorage.getItem(chooser_key);
  } catch {
    return null;
  }
}
