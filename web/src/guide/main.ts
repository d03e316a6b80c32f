import './guide.css';
import { below } from '../below.ts';
import { copyText } from '../clipboard.ts';
import { fillInKey } from './key.ts';
import { openFinder, prepareFinder } from './finder.ts';
import { prepareSamples } from './samples.ts';

/** The pages of the guide are complete without this: it copies, searches, switches colours and languages, and fills in the key. */

function byId(id: string): HTMLElement | undefined {
  return document.getElementById(id) ?? undefined;
}

function addCopyButtons(): void {
  const status = byId('copied');
  for (const block of document.querySelectorAll<HTMLPreElement>('.example pre')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.addEventListener('click', () => {
      void copyText((block.textContent ?? '').trimEnd()).then((is_copied) => {
        if (status && is_copied) status.textContent = 'The example is copied.';
        button.textContent = is_copied ? 'Copied' : 'Not copied';
      });
    });
    block.after(button);
  }
}

/** The name under which the dashboard keeps the choice, too. */
const theme_key = 'mantine-color-scheme-value';
const theme_attribute = 'data-mantine-color-scheme';

function prepareTheme(): void {
  const button = byId('theme');
  const is_dark = () => document.documentElement.getAttribute(theme_attribute) === 'dark';
  const show = () => {
    if (button) button.textContent = is_dark() ? 'Light' : 'Dark';
  };
  show();
  button?.addEventListener('click', () => {
    const chosen = is_dark() ? 'light' : 'dark';
    document.documentElement.setAttribute(theme_attribute, chosen);
    try {
      localStorage.setItem(theme_key, chosen);
    } catch {
      // A browser that keeps nothing shows it for this page.
    }
    show();
  });
}

function prepareMenu(): void {
  const button = byId('menu');
  button?.addEventListener('click', () => {
    const is_open = byId('navigation')?.classList.toggle('open') ?? false;
    button.setAttribute('aria-expanded', String(is_open));
  });
}

addCopyButtons();
prepareSamples();
prepareTheme();
prepareMenu();
prepareFinder(below('/guide'));
byId('search')?.addEventListener('click', openFinder);
addEventListener('keydown', (event) => {
  if (event.key !== 'k' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  openFinder();
});
document.querySelector('#navigation [aria-current]')?.scrollIntoView({ block: 'nearest' });
void fillInKey();
