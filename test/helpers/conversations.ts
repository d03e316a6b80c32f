import type { Page } from 'playwright-core';

/** Returns all conversations that the browser has saved, as JSON. */
export function savedConversations(on: Page): Promise<string> {
  return on.evaluate(`new Promise((resolve, reject) => {
    const opening = indexedDB.open('medley-playground');
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const db = opening.result;
      const all = db.transaction('conversations').objectStore('conversations').getAll();
      all.onsuccess = () => { db.close(); resolve(JSON.stringify(all.result)); };
      all.onerror = () => reject(all.error);
    };
  })`);
}

/** Makes the saved conversation with this title one of somebody else. */
export function giveAway(on: Page, title: string): Promise<void> {
  return on.evaluate(`new Promise((resolve, reject) => {
    const opening = indexedDB.open('medley-playground');
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const db = opening.result;
      const change = db.transaction('conversations', 'readwrite');
      const rows = change.objectStore('conversations');
      const all = rows.getAll();
      all.onsuccess = () => {
        const row = all.result.find(({ conversation }) => conversation.title === ${JSON.stringify(title)});
        rows.put({ ...row, owner: 'somebody else' });
      };
      change.oncomplete = () => { db.close(); resolve(); };
      change.onerror = () => reject(change.error);
    };
  })`);
}
