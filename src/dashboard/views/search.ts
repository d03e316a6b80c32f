/** Something that a search found: of which kind, by which id its page is found, and two texts that describe it. */
export type SearchHit = {
  kind: 'task' | 'chat' | 'key' | 'delivery' | 'model' | 'account';
  id: string;
  title: string;
  detail: string;
};

/** `is_partial`: tasks were left out, since to read their words takes too long at the moment. */
export type SearchView = { data: SearchHit[]; is_partial: boolean };
