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
