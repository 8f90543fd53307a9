import { expect, test } from 'vitest';
import { isPrivateHost } from '../../../src/routing/private-address.ts';

test.each([
  'localhost',
  'LOCALHOST.',
  'api.localhost',
  'ollama:11434',
  'nas.local',
  'vllm.svc.internal',
  'metadata.google.internal',
  'router.home.arpa',
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '255.255.255.255',
  '[::]',
  '[::1]',
  '[fe80::1]',
  '[fd00:ec2::254]',
  '[ff02::1]',
  '[::ffff:10.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::1]',
  '[2002:c0a8:101::]',
])('%s is private', (host) => {
  expect(isPrivateHost(new URL(`http://${host}/`).hostname)).toBe(true);
});

test.each([
  'api.openai.com',
  'localhost.example.com',
  'internal.example.com',
  'mylocal.dev',
  '8.8.8.8',
  '172.15.0.1',
  '172.32.0.1',
  '100.128.0.1',
  '192.169.0.1',
  '11.0.0.1',
  '223.255.255.255',
  '[2606:4700:4700::1111]',
  '[2001:4860:4860:0:0:0:0:8888]',
  '[::ffff:8.8.8.8]',
  '[64:ff9b::808:808]',
  '[2002:808:808::]',
])('%s is public', (host) => {
  expect(isPrivateHost(new URL(`http://${host}/`).hostname)).toBe(false);
});
