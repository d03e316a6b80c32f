/** The cookie with the language that somebody chose in this browser. The page writes it, and reads nothing else of it. */
const cookie_name = 'medley_language';

type Headers = { cookie?: string | undefined; 'accept-language'?: string | undefined };

/** Returns the language of a page: the one chosen in this browser, else the first that the browser asks for, else English. */
export function chosenLanguage(headers: Headers, languages: readonly string[]): string {
  const cookies = (headers.cookie ?? '').split(';').map((cookie) => cookie.trim());
  const chosen = cookies.find((cookie) => cookie.startsWith(`${cookie_name}=`))?.slice(cookie_name.length + 1);
  if (chosen !== undefined && languages.includes(chosen)) return chosen;
  return acceptedLanguage(headers['accept-language'] ?? '', languages) ?? 'en';
}

/** `pl-PL, en;q=0.8`: the language with the highest weight that is there. A region finds its language, and never another region. */
function acceptedLanguage(header: string, languages: readonly string[]): string | undefined {
  const ranges = header
    .slice(0, header_length_max)
    .split(',')
    .map((part) => {
      const [range = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return { range, weight: weight === undefined ? 1 : Number(weight) };
    })
    .filter(({ weight }) => weight > 0)
    .toSorted((one, other) => other.weight - one.weight);
  for (const { range } of ranges) {
    const own = languages.find(
      (language) => range === language.toLowerCase() || range.startsWith(`${language.toLowerCase()}-`),
    );
    if (own !== undefined) return own;
  }
  return undefined;
}

const header_length_max = 1_000;
