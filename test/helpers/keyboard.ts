import type { Locator, Page } from 'playwright-core';
import { vi } from 'vitest';

type Role = Parameters<Page['getByRole']>[0];
type Name = string | RegExp;

/** A page as somebody uses it who has a keyboard and no mouse. Of several with a name, the first is meant. */
export type Keyboard = {
  /** Goes on by Tab until this has the focus, which must be seen there. */
  tabTo(role: Role, name: Name, within?: Locator): Promise<void>;
  tabToElement(target: Locator): Promise<void>;
  /** Goes down a menu that opens until this has the focus: a key that comes before the menu takes it is lost. */
  arrowTo(role: Role, name: Name): Promise<void>;
  /** Expects that this has the focus, or gets it in a moment: in a dialog that opens, or when it has closed. */
  isOn(role: Role, name: Name): Promise<void>;
  press(...keys: string[]): Promise<void>;
  /** By Tab to a field, and there this in place of what stands in it. */
  fill(name: Name, text: string): Promise<void>;
  /** By Tab to a button or link, and there Enter. */
  enter(role: Role, name: Name, within?: Locator): Promise<void>;
};

/** More than any page has places for the focus. */
const presses_max = 150;

export function keyboardOf(page: Page): Keyboard {
  const find = (role: Role, name: Name, within: Page | Locator = page) =>
    within.getByRole(role, { name, ...(typeof name === 'string' && { exact: true }) }).first();

  const tabToElement: Keyboard['tabToElement'] = async (target) => {
    await target.waitFor({ state: 'attached' });
    for (let presses = 0; presses < presses_max; presses += 1) {
      if (await hasFocus(target)) return expectSeen(page, String(target));
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${String(target)}`);
  };
  const tabTo: Keyboard['tabTo'] = (role, name, within) => tabToElement(find(role, name, within));
  return {
    tabTo,
    tabToElement,
    arrowTo: async (role, name) => {
      const target = find(role, name);
      await vi.waitFor(
        async () => {
          if (!(await hasFocus(target))) await page.keyboard.press('ArrowDown');
          if (!(await hasFocus(target))) throw new Error(`Arrows do not lead to ${role} ${name}`);
        },
        { timeout: 120_000, interval: 200 },
      );
      await expectSeen(page, `${role} ${name}`);
    },
    isOn: async (role, name) => {
      await find(role, name).and(page.locator(':focus')).waitFor({ state: 'attached' });
      await expectSeen(page, `${role} ${name}`);
    },
    press: async (...keys) => {
      for (const key of keys) await page.keyboard.press(key);
    },
    fill: async (name, text) => {
      await tabTo('textbox', name);
      await page.keyboard.press('Control+A');
      await page.keyboard.type(text);
    },
    enter: async (role, name, within) => {
      await tabTo(role, name, within);
      await page.keyboard.press('Enter');
    },
  };
}

const hasFocus = (target: Locator) => target.evaluate((element) => element === element.ownerDocument.activeElement);

/** WCAG 2.4.7 and 2.4.11: one sees where the focus is, and nothing lies over it, or not longer than something fades. */
function expectSeen(page: Page, name: string): Promise<void> {
  return vi.waitFor(
    async () => {
      const fault: string | null = await page.evaluate(`(${fault_of_focus})(document.activeElement)`);
      if (fault !== null) throw new Error(`The focus on ${name} ${fault}`);
    },
    { timeout: 120_000, interval: 50 },
  );
}

/** Every place of the page where the focus could not be seen, with what is wrong there. */
export async function unseenIn(page: Page): Promise<string[]> {
  await page.keyboard.press('Tab'); // from now on the browser marks where the focus is
  return page.evaluate(`(${faults_of_page})(${fault_of_focus})`);
}

/** As text: it runs in the page. Fields have a caret; what is drawn beside a hidden radio or switch has its outline. */
const fault_of_focus = `(element) => {
  const isOutlined = (each) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(each);
    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1;
  };
  const is_field = element.matches('textarea, input:not([type=radio], [type=checkbox], [type=range], [type=file])');
  const is_hidden = element.matches('[type=radio], [type=checkbox]');
  const shown = (is_hidden && element.nextElementSibling) || element;
  if (!is_field && !isOutlined(shown)) return 'cannot be seen';
  const { left, right, top, bottom } = shown.getBoundingClientRect();
  const middle = (from, to, end) => (Math.max(from, 0) + Math.min(to, end)) / 2;
  const over = document.elementFromPoint(middle(left, right, innerWidth), middle(top, bottom, innerHeight));
  if (over === null) return 'is out of sight';
  if (!shown.contains(over) && !over.contains(shown)) return 'lies under ' + over.outerHTML.slice(0, 120);
  return null;
}`;

/** Finds elements without a visible focus. Those that fade, or that the focus opened before it went on, get a second. */
const faults_of_page = `async (faultOf) => {
  const places = 'a[href], button, input, select, textarea, summary, video[controls], audio[controls], [tabindex]';
  const isSeen = (each) => each.checkVisibility({ visibilityProperty: true });
  const canHaveFocus = (each) => each.tabIndex >= 0 && !each.disabled && isSeen(each);
  const faults = [];
  for (const element of [...document.querySelectorAll(places)].filter(canHaveFocus)) {
    element.focus();
    for (let tries = 0; faultOf(element) !== null && tries < 20; tries++) await new Promise((done) => setTimeout(done, 50));
    const fault = document.activeElement === element ? faultOf(element) : 'cannot be had';
    if (fault === null || !element.isConnected) continue; // a list that was read anew has others by now
    faults.push('the focus ' + fault + ': ' + element.outerHTML.slice(0, 160));
  }
  return faults;
}`;
