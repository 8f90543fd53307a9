import { vi } from 'vitest';
import type { AcquireAnswer, AcquireRequest } from '../../../src/contract/rpc/group-rpc.ts';
import { GroupObject } from '../../../src/group/group-object.ts';

/** Ends what was overloaded. */
export let mend = (): void => {};

/**
 * Overloads the object of a group for its callers: it throws what the platform throws, in front of the real one, until
 * `isOver`. Returns a mock that is called with the ticket of each call that was not taken.
 */
export function overload(group: string, isOver: () => boolean = () => false) {
  const message = 'Durable Object is overloaded. Too many requests queued.';
  return refuseAll(group, Object.assign(new Error(message), { overloaded: true }), isOver);
}

/** Makes the object of a group throw an error at every acquire call, before the real one, until `isOver`. */
export function refuseAll(group: string, error: Error, isOver: () => boolean = () => false) {
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { acquire } = GroupObject.prototype;
  const refused = vi.fn<(ticketId: string) => void>();
  const mock = vi.spyOn(GroupObject.prototype, 'acquire');
  mock.mockImplementation(function overloaded(
    this: GroupObject,
    request: AcquireRequest,
  ): Promise<AcquireAnswer> {
    if (request.group !== group || isOver()) return acquire.call(this, request);
    refused(request.ticket.id);
    return Promise.reject(error);
  });
  mend = () => mock.mockRestore();
  return refused;
}
