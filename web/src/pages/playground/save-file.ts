/** Saves a text as a file of the person's. */
export function saveFile(name: string, media_type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: media_type }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
