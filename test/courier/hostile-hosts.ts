// Hosts that no webhook may reach, in every form that URL understands.

const words = (text: string) => text.trim().split(/\s+/)

/** All the ways to write 127.0.0.1 that URL understands. */
export const spellingsOfLoopback = words(`
  127.0.0.1 127.0.0.1. 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0x7f.1 017700000001 0177.0.0.1 0177.0x0.0.01 %31%32%37.0.0.1
  127.0.0.1 ①②⑦.⓪.⓪.① 127。0。0。1`)
export const othersOfLoopback = words('127.0.0.2 127.255.255.254 [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1]')
export const privateHosts = words(`
  0.0.0.0 0 0.1.2.3 10.0.0.1 012.0.0.1 100.64.0.1 100.100.100.200 168.63.129.16 169.254.169.254 0xa9fea9fe 2852039166 172.16.0.1
  172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1
  255.255.255.255 [::] [::2] [::10.0.0.1] [::ffff:10.0.0.1] [::ffff:a9fe:a9fe] [::ffff:0:10.0.0.1] [64:ff9b::10.0.0.1]
  [64:ff9b:1::10.0.0.1] [100::1] [2001::1] [2001:db8::1] [2002:a00:1::1] [3fff::1] [4000::1] [5f00::1] [fc00::1] [fd00:ec2::254] [fe80::1]
  [fec0::1] [ff02::1]`)

/** What a name may be found to be: one address, or several, of which one that is public does not make up for one that is not. */
export const privateAddresses = words(`
  127.0.0.1 127.0.0.53 ::1 0.0.0.0 :: 10.0.0.1 168.63.129.16 169.254.169.254 192.168.1.1 fd12:3456::1 fe80::1 fe80::1%2 ::ffff:10.0.0.1
  ::ffff:a00:1 ::127.0.0.1 ::7f00:1 64:ff9b::a9fe:a9fe 93.184.215.14,10.0.0.1 2606:4700::1111,fd00::1`)
