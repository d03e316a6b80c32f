import MiniSearch from 'minisearch';

/** One part of a page below a heading. */
type Section = {
  page: string;
  name: string;
  /** Sections of a greater weight come first. */
  weight: number;
  id: string;
  title: string;
  text: string;
};

type Match = { section: Section; words: string[] };

type Index = (words: string) => Match[];

const results_max = 20;
const excerpt_length = 160;

let index: Promise<Index> | undefined;

/** Sections come with the first search: most readers of a page search nothing. */
async function loadIndex(guide: string): Promise<Index> {
  const answer = await fetch(`${guide}/search.json`);
  if (!answer.ok) throw new Error(`${answer.status}`);
  const sections: Section[] = await answer.json();
  const engine = new MiniSearch<Section & { number: number }>({
    idField: 'number',
    fields: ['title', 'page', 'text'],
    searchOptions: {
      prefix: true,
      fuzzy: 0.15,
      combineWith: 'AND',
      boost: { title: 4, page: 2 },
      boostDocument: (number) => sections[Number(number)]?.weight ?? 1,
    },
  });
  engine.addAll(sections.map((section, number) => ({ ...section, number })));
  return (words) =>
    engine
      .search(words)
      .slice(0, results_max)
      .flatMap(({ id, terms }) => {
        const section = sections[Number(id)];
        return section ? [{ section, words: terms }] : [];
      });
}

function parts() {
  return {
    dialog: document.querySelector<HTMLDialogElement>('#finder'),
    input: document.querySelector<HTMLInputElement>('#words'),
    count: document.querySelector('#count'),
    results: document.querySelector('#results'),
  };
}

/** Shows the search, ready for words. */
export function openFinder(): void {
  const { dialog, input } = parts();
  if (dialog?.open === false) dialog.showModal();
  input?.focus();
}

/** `guide`: the address of the guide. */
export function prepareFinder(guide: string): void {
  const { dialog, input } = parts();
  input?.addEventListener('input', () => void search(guide));
  dialog?.addEventListener('click', (event) => {
    if (event.target === dialog || event.target instanceof HTMLAnchorElement) dialog.close();
  });
  dialog?.querySelector('form')?.addEventListener('submit', (event) => {
    const first = document.querySelector<HTMLAnchorElement>('#results a');
    const is_enter = event instanceof SubmitEvent && document.activeElement === input;
    if (!is_enter || first === null) return;
    event.preventDefault();
    first.click();
  });
}

async function search(guide: string): Promise<void> {
  const { input, count, results } = parts();
  if (!input || !count || !results) return;
  const words = input.value.trim();
  index ??= loadIndex(guide);
  try {
    const matches = words === '' ? [] : (await index)(words);
    if (input.value.trim() !== words) return; // more has been typed
    results.replaceChildren(...matches.map((each) => resultOf(guide, each)));
    count.textContent = words === '' ? '' : matches.length === 0 ? 'Nothing matches.' : `${matches.length} places`;
  } catch {
    index = undefined;
    count.textContent = 'The search could not be loaded. Type again to retry.';
  }
}

function resultOf(guide: string, { section, words }: Match): HTMLElement {
  const item = document.createElement('li');
  const link = document.createElement('a');
  const fragment = section.id === '' ? '' : `#${section.id}`;
  link.href = `${guide}${section.name === '' ? '' : `/${section.name}`}${fragment}`;
  link.append(section.title === section.page ? section.title : `${section.page}: ${section.title}`);
  const excerpt = document.createElement('small');
  excerpt.textContent = excerptOf(section.text, words);
  link.append(excerpt);
  item.append(link);
  return item;
}

function excerptOf(text: string, words: string[]): string {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const from = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - 40);
  const excerpt = text.slice(from, from + excerpt_length);
  return `${from > 0 ? '…' : ''}${excerpt}${from + excerpt_length < text.length ? '…' : ''}`;
}
