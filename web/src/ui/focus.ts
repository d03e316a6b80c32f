/**
 * Restores the keyboard focus. A button that waits for a response is disabled meanwhile, and the browser takes
 * the focus from it: it comes back with the end of the wait. A link that is gone with its page leaves it to
 * the main part of the next one.
 */
export function keepFocus(): void {
  let last: Element | null = null;
  document.addEventListener('focusin', ({ target }) => {
    last = target instanceof Element ? target : null;
  });
  // Whoever points at something else has done with it.
  document.addEventListener('pointerdown', () => (last = null), { capture: true });
  new MutationObserver((changes) => {
    if (last === null || document.activeElement !== document.body) return;
    if (!last.isConnected) document.getElementById('main')?.focus({ preventScroll: true });
    else if (changes.some(({ target }) => target === last)) restore(last);
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['disabled'] });
}

function restore(element: Element): void {
  if (element instanceof HTMLButtonElement && !element.disabled) element.focus();
}
