import { notifications } from '@mantine/notifications';

/**
 * A part of the dashboard that is gone: the service was updated while this page was open, and the new version has other files. The router loads
 * the page anew when it needs such a part; whoever works in the page meanwhile is not disturbed.
 */

const noted = 'medley.updated';
const reloaded = 'medley.reloaded';
const again_after_ms = 30_000;

/** Tells whether a file of the dashboard could not be loaded; browsers say so in different words. */
export function isMissingPart(error: unknown): boolean {
  return (
    error instanceof Error &&
    /dynamically imported module|importing a module script failed|unable to preload css/i.test(error.message)
  );
}

/** Remembers that a part was missing, and says so once the page has the new version. */
export function watchForUpdates(): void {
  window.addEventListener('vite:preloadError', () => sessionStorage.setItem(noted, 'yes'));
  if (sessionStorage.getItem(noted) === null) return;
  sessionStorage.removeItem(noted);
  notifications.show({ title: 'Medley was updated', message: 'This page was reloaded.', autoClose: 10_000 });
}

/** Reloads the page, but not again and again: false if that was tried just now. */
export function loadAnew(): boolean {
  const last_ms = Number(sessionStorage.getItem(reloaded) ?? 0);
  if (Date.now() - last_ms < again_after_ms) return false;
  sessionStorage.setItem(reloaded, String(Date.now()));
  window.location.reload();
  return true;
}
