export type MediaType = {
  content_type: string;
  /** Safe and useful to show in a browser tab; everything else is handed over as a download. */
  inline: boolean;
};

/** Every extension that a stored file can have. SVG and HTML are not among them, on purpose. */
const media_types = {
  png: { content_type: 'image/png', inline: true },
  jpg: { content_type: 'image/jpeg', inline: true },
  webp: { content_type: 'image/webp', inline: true },
  gif: { content_type: 'image/gif', inline: true },
  avif: { content_type: 'image/avif', inline: false },
  mp4: { content_type: 'video/mp4', inline: true },
  webm: { content_type: 'video/webm', inline: true },
  mov: { content_type: 'video/quicktime', inline: false },
  wav: { content_type: 'audio/wav', inline: true },
  mp3: { content_type: 'audio/mpeg', inline: true },
  ogg: { content_type: 'audio/ogg', inline: true },
  weba: { content_type: 'audio/webm', inline: true },
  flac: { content_type: 'audio/flac', inline: false },
  aac: { content_type: 'audio/aac', inline: false },
  m4a: { content_type: 'audio/mp4', inline: false },
  txt: { content_type: 'text/plain; charset=utf-8', inline: true },
  json: { content_type: 'application/json', inline: false },
  vtt: { content_type: 'text/vtt; charset=utf-8', inline: false },
  srt: { content_type: 'application/x-subrip; charset=utf-8', inline: false },
  jsonl: { content_type: 'application/jsonl', inline: false },
  pdf: { content_type: 'application/pdf', inline: false },
  bin: { content_type: 'application/octet-stream', inline: false },
} as const satisfies Record<string, MediaType>;

export type Extension = keyof typeof media_types;

export function isExtension(text: string): text is Extension {
  return Object.hasOwn(media_types, text);
}

/** The extension of a text of this type, which for unknown ones is plain text. */
export function textExtension(content_type: string): Extension {
  const plain = content_type.split(';')[0]?.trim().toLowerCase();
  const texts = ['json', 'vtt', 'srt'] as const;
  return texts.find((extension) => media_types[extension].content_type.split(';')[0] === plain) ?? 'txt';
}

/** Returns the media type in which files with this extension are served. */
export function mediaType(extension: Extension): MediaType {
  return media_types[extension];
}
