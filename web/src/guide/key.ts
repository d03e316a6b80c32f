import { below } from '../below.ts';

/** The examples have this in the place of a key. */
const placeholder = 'mdl_…';

/** Shows the beginning of the reader's own key in the examples, if somebody has signed in and has one. */
export async function fillInKey(): Promise<void> {
  const texts = examplesWithKey();
  if (texts.length === 0) return;
  const key = await ownKey().catch(() => undefined);
  if (key === undefined) return;
  for (const text of texts) text.data = text.data.replaceAll(placeholder, key);
}

function examplesWithKey(): Text[] {
  const texts: Text[] = [];
  for (const block of document.querySelectorAll('article pre')) {
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode;
      if (text instanceof Text && text.data.includes(placeholder)) texts.push(text);
    }
  }
  return texts;
}

/** `mdl_ab12…`: nobody can show more, since only a hash of a key is stored. */
async function ownKey(): Promise<string | undefined> {
  const me: { accounts?: { id: string }[] } = await read('/dash/me');
  const account = me.accounts?.[0];
  if (account === undefined) return undefined;
  const keys: { data?: { kind: string; state: string; shown_as: string }[] } = await read(
    `/dash/accounts/${account.id}/keys`,
  );
  const key = keys.data?.find(({ kind, state }) => kind === 'program' && state === 'active');
  return key?.shown_as.replace(/…[^]*$/, '…');
}

async function read<T>(path: string): Promise<T> {
  const answer = await fetch(below(path));
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}
