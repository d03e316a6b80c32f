/** The choice of a reader, for every page. */
const language_key = 'medley-sample-language';

/** Shows the samples of a request in one language at a time: the one that the reader chose last, else the first. */
export function prepareSamples(): void {
  const groups = [...document.querySelectorAll('.samples')];
  groups.forEach((group, index) => group.prepend(choiceOf(languagesOf(group), index)));
  show(chosen() ?? '');
  for (const group of groups) group.classList.add('ready');
}

function languagesOf(group: Element): string[] {
  return [...group.querySelectorAll<HTMLElement>('.sample')].map((sample) => sample.dataset['language'] ?? '');
}

function choiceOf(languages: string[], index: number): HTMLElement {
  const choice = document.createElement('fieldset');
  const legend = document.createElement('legend');
  legend.className = 'hidden';
  legend.textContent = 'Language of the example';
  choice.append(legend);
  for (const language of languages) {
    const label = document.createElement('label');
    const input = document.createElement('input');
    input.type = 'radio';
    input.name = `language-${index}`;
    input.value = language;
    input.addEventListener('change', () => choose(language, choice));
    label.append(input, language);
    choice.append(label);
  }
  return choice;
}

/** Samples above have other lengths in another language: the page scrolls along, so that the choice stays in its place. */
function choose(language: string, choice: Element): void {
  const before = choice.getBoundingClientRect().top;
  show(language);
  scrollBy({ top: choice.getBoundingClientRect().top - before, behavior: 'instant' });
  try {
    localStorage.setItem(language_key, language);
  } catch {
    // A browser that keeps nothing shows it for this page.
  }
}

function chosen(): string | undefined {
  try {
    return localStorage.getItem(language_key) ?? undefined;
  } catch {
    return undefined;
  }
}

function show(language: string): void {
  for (const group of document.querySelectorAll('.samples')) {
    const languages = languagesOf(group);
    const shown = languages.includes(language) ? language : languages[0];
    for (const sample of group.querySelectorAll<HTMLElement>('.sample'))
      sample.hidden = sample.dataset['language'] !== shown;
    for (const input of group.querySelectorAll('input')) input.checked = input.value === shown;
  }
}
