const kind_labels: Readonly<Record<string, string>> = {
  chat: 'Chat',
  embedding: 'Embedding',
  rerank: 'Rerank',
  moderation: 'Moderation',
  image: 'Image',
  video: 'Video',
  audio: 'Audio',
};

/** Names a kind of models for people; one that is new by its own name. */
export function kindText(kind: string): string {
  return kind_labels[kind] ?? capitalized(kind);
}

/** Returns a text with a capital at its beginning. */
export function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

const media_kinds: readonly string[] = ['image', 'video', 'audio'];

/** Tells whether the playground can run models of this kind. Vectors are numbers: there is nothing to look at. */
export function isInPlayground(kind: string): boolean {
  return kind !== 'embedding';
}

/** Tells whether models of this kind run as tasks. The others answer in the call itself. */
export function isMedia(kind: string): boolean {
  return media_kinds.includes(kind);
}
