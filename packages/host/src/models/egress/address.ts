import { BlockList, isIP, isIPv6 } from 'node:net'

/** IPv4 ranges that are no address of the public internet, by RFC 6890 and what came after it. */
const CLOSED_IPV4: readonly (readonly [network: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Multicast, reserved, broadcast.
  ['224.0.0.0', 3],
]

/** Of IPv6 only 2000::/3 is public; within it these carry an IPv4 address (Teredo, 6to4) or are for documents. */
const CLOSED_IPV6: readonly (readonly [network: string, prefix: number])[] = [
  ['2001::', 32],
  ['2001:db8::', 32],
  ['2002::', 16],
]

const closed = new BlockList()
for (const [network, prefix] of CLOSED_IPV4) closed.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of CLOSED_IPV6) closed.addSubnet(network, prefix, 'ipv6')

const global = new BlockList()
global.addSubnet('2000::', 3, 'ipv6')

/** Whether it is an IP address of the public internet. Whatever holds an IPv4 address inside an IPv6 one is not. */
export function isPublic(address: string): boolean {
  if (isIPv6(address)) return global.check(address, 'ipv6') && !closed.check(address, 'ipv6')
  return isIP(address) === 4 && !closed.check(address, 'ipv4')
}
