import type { Page } from 'playwright-core';

/** A phone held upright: its pixels, and fingers in place of a mouse. */
export const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, reducedMotion: 'reduce' } as const;

/** Returns everything in the page that a finger may miss: narrower or lower than 44 pixels (WCAG 2.5.5), with its size. */
export function smallTargetsIn(page: Page): Promise<string[]> {
  return page.evaluate(`(${small_targets})()`);
}

/** Returns the cells of lists that are cut off, out of the window, or without the name of their column. */
export function lostCellsIn(page: Page): Promise<string[]> {
  return page.evaluate(`(${lost_cells})()`);
}

/** Returns the buttons that reach out of the field that they are in. */
export function strayButtonsIn(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('.mantine-Input-wrapper button')].flatMap((each) => {
    const [field, own] = [each.closest('.mantine-Input-wrapper'), each].map((part) => part.getBoundingClientRect());
    const is_inside = own.top > field.top - 1 && own.bottom < field.bottom + 1 && own.right < field.right + 1;
    return is_inside || !each.checkVisibility() ? [] : ['is out of its field: ' + each.outerHTML.slice(0, 200)];
  })`);
}

/**
 * As text: it runs in the page. Links within a sentence are excepted, as in WCAG. A box to tick is as large as it and its
 * label together; a field is as large as its frame.
 */
const small_targets = `() => {
  const least = 43.5;
  const targets = 'a[href], button, input, select, textarea, summary, [role=tab], [role=switch], [role=slider], [role=option], [role=menuitem]';
  const union = (rects) => ({
    left: Math.min(...rects.map(({ left }) => left)), right: Math.max(...rects.map(({ right }) => right)),
    top: Math.min(...rects.map(({ top }) => top)), bottom: Math.max(...rects.map(({ bottom }) => bottom)),
  });
  const areaOf = (each) => {
    const parts = [each, ...(each.labels ?? [])];
    return union(parts.map((part) => part.getBoundingClientRect()).filter(({ width, height }) => width * height > 0));
  };
  const isInSentence = (each) => {
    if (!each.matches('a') || getComputedStyle(each).display !== 'inline') return false;
    const own = each.textContent.trim().length;
    let block = each.parentElement;
    while (block && getComputedStyle(block).display === 'inline') block = block.parentElement;
    return block !== null && block.textContent.trim().length > own + 1;
  };
  const isThere = (each) => {
    if (!each.checkVisibility({ visibilityProperty: true }) || each.disabled || each.type === 'hidden') return false;
    const { left, right, top, bottom } = areaOf(each);
    return right > 0 && left < innerWidth && right - left > 1 && bottom - top > 1;
  };
  const faults = [];
  for (const each of document.querySelectorAll(targets)) {
    if (!isThere(each) || isInSentence(each)) continue;
    const { left, right, top, bottom } = areaOf(each);
    const after = getComputedStyle(each, '::after');
    const more = after.content !== 'none' && after.position === 'absolute' ? -2 * parseFloat(after.top) : 0;
    const [width, height] = [right - left + more, bottom - top + more];
    if (width >= least && height >= least) continue;
    faults.push(Math.round(width) + ' x ' + Math.round(height) + ': ' + each.outerHTML.replace(/<svg.*?<\\/svg>/g, '').slice(0, 200));
  }
  return faults;
}`;

/** As text: it runs in the page. */
const lost_cells = `() => {
  const faults = [];
  const nameOf = (cell) => cell.closest('table').caption?.textContent + ': ' + cell.innerText.slice(0, 60);
  for (const cell of document.querySelectorAll('.list > tbody > tr > :is(td, th)')) {
    if (!cell.checkVisibility()) continue;
    const { left, right } = cell.getBoundingClientRect();
    if (left < 0 || right > innerWidth) faults.push(nameOf(cell) + ' is out of the window');
    for (const each of [cell, ...cell.querySelectorAll('*')]) {
      const { overflowX } = getComputedStyle(each);
      const has_text = [...each.childNodes].some(({ nodeType, textContent }) => nodeType === 3 && textContent.trim() !== '');
      if (has_text && overflowX !== 'visible' && each.clientWidth > 1 && each.scrollWidth > each.clientWidth + 1) {
        faults.push(nameOf(cell) + ' is cut off');
      }
    }
  }
  for (const table of document.querySelectorAll('.list')) {
    const heads = [...table.querySelectorAll('thead th')];
    const row = table.querySelector('tbody tr');
    const cells = row ? [...row.querySelectorAll(':scope > :is(td, th)')] : [];
    const unnamed = cells.filter((cell) => cell.checkVisibility() && getComputedStyle(cell, '::before').content === 'none');
    const hidden = heads.filter((head) => head.firstElementChild?.matches('[class*=VisuallyHidden]'));
    if (unnamed.length > hidden.length + 1) faults.push(table.caption?.textContent + ' has cells without a name');
  }
  return faults;
}`;
