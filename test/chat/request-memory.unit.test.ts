import { expect, test } from 'vitest';
import { RequestMemory } from '../../src/chat/request-memory.ts';

test('the parts of a request are let go once, at the release or earlier, and those that come later at once', () => {
  const memory = new RequestMemory();
  const gone: string[] = [];
  memory.add(() => gone.push('bytes'));
  const letGoFiles = memory.add(() => gone.push('files'));
  letGoFiles();
  expect(gone).toEqual(['files']);
  memory.release();
  memory.release();
  letGoFiles();
  expect(gone).toEqual(['files', 'bytes']);
  memory.add(() => gone.push('late'));
  expect(gone).toEqual(['files', 'bytes', 'late']);
});
