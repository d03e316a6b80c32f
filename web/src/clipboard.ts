/**
 * Copies a text. False where the browser lets nobody. Only pages with https have its clipboard; on those of plain http the
 * command of before it still copies what is selected.
 */
export async function copyText(text: string): Promise<boolean> {
  if (!window.isSecureContext) return copyByCommand(text);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByCommand(text);
  }
}

function copyByCommand(text: string): boolean {
  const focused = document.activeElement;
  const box = document.createElement('textarea');
  box.value = text;
  box.style.position = 'fixed'; // the page does not scroll to it
  box.style.opacity = '0';
  // A dialog lets the focus go nowhere else.
  (focused?.closest('[role=dialog]') ?? document.body).append(box);
  box.select();
  const is_copied = document.execCommand('copy');
  box.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return is_copied;
}
