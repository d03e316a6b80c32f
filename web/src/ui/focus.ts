/**
 * A button that waits for an answer is disabled meanwhile, and the browser takes the focus from it. Who works by
 * keyboard finds it where it was: it comes back with the end of the wait, unless it has gone elsewhere.
 */
export function keepFocusOfWaitingButtons(): void {
  let last: Element | null = null;
  document.addEventListener('focusin', ({ target }) => {
    last = target instanceof Element ? target : null;
  });
  new MutationObserver((changes) => {
    const enabled = changes.find(
      ({ target }) => target === last && last instanceof HTMLButtonElement && !last.disabled,
    );
    if (enabled && document.activeElement === document.body && last instanceof HTMLButtonElement) last.focus();
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ['disabled'] });
}
