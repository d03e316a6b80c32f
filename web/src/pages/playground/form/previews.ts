type Preview = { url: string; name: string };

/** Files whose bytes the browser keeps for their previews. */
export const previews_max = 30;

/** Previews of the files that were uploaded last in this tab, so that they need no download. */
const previews = new Map<string, Preview>();

export function previewOf(id: string): Preview | undefined {
  return previews.get(id);
}

/** Makes the preview of an uploaded file; the oldest one goes. */
export function addPreview(id: string, file: File): void {
  previews.set(id, { url: URL.createObjectURL(file), name: file.name });
  const [oldest] = previews;
  if (previews.size <= previews_max || !oldest) return;
  previews.delete(oldest[0]);
  URL.revokeObjectURL(oldest[1].url);
}
