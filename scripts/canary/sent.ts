export interface SentRequests {
  calls: number;
  admin_requests: number;
  calls_to_upstream: number;
}
