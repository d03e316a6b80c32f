import { expect, it } from 'vitest';
import { weaknessOf } from '../../../src/accounts/sign-in/weak-passwords.ts';

const anna = { email: 'anna.smith@acme-studio.example', name: 'Anna Smith' };

it.each(['password123', 'Password123', 'qwertyuiop', '1234567890', 'iloveyou123', '!password123!', 'Ｐassword123'])(
  'the common password %s is refused with a plain sentence',
  (password) => {
    expect(weaknessOf(password, {})).toBe('This password is common, so it is guessed first. Choose another one.');
  },
);

it.each(['ąąąąąąąąąą', 'abababababab', 'xyz1xyz1xyz1', '!!!!!!!!!!!!'])(
  'the password %s, which repeats a few characters, is refused',
  (password) => expect(weaknessOf(password, {})).toMatch(/repeats a few characters/),
);

it.each([
  'anna.smith@acme-studio.example',
  'AnnaSmith2026',
  'smith-anna-1',
  'Acme-Studio-1!',
  'medley2026!!',
  'ANNA SMITH',
])('the password %s, which is made of what everybody knows about its owner, is refused', (password) =>
  expect(weaknessOf(password, anna)).toMatch(/your name or your e-mail address/),
);

it.each([
  'correct horse battery',
  'anna and her blue bicycle',
  'kX9!vv2-anna-qPw',
  'żółw na rowerze 7',
  'aaaaaaaaaab',
  'the thief knows it',
])('the password %s is accepted', (password) => expect(weaknessOf(password, anna)).toBeUndefined());
