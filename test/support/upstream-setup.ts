import type { TestProject } from 'vitest/node';
import './provided-context.ts';
import { startStrictUpstream } from '../strict-upstream/strict-upstream.ts';

/** Starts the strict upstream in Node, for tests that run inside workerd. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const upstream = await startStrictUpstream();
  project.provide('strictUpstreamUrl', upstream.url);
  return () => upstream.close();
}
