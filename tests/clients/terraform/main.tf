# A volume, its attachment to an instance, a snapshot, and a volume of the snapshot. Nothing here names Ebbtide: the
# endpoint, the Region and the key are in the environment.

variable "instance" {
  type = string
}

variable "size" {
  type    = number
  default = 2
}

provider "aws" {
  skip_metadata_api_check = true
}

resource "aws_ebs_volume" "data" {
  availability_zone = "us-east-1a"
  type              = "gp3"
  size              = var.size
  tags              = { Name = "data" }
}

resource "aws_volume_attachment" "data" {
  device_name = "/dev/sdh"
  volume_id   = aws_ebs_volume.data.id
  instance_id = var.instance
}

resource "aws_ebs_snapshot" "nightly" {
  volume_id = aws_ebs_volume.data.id
  tags      = { Name = "nightly" }
}

resource "aws_ebs_volume" "restored" {
  availability_zone = "us-east-1a"
  type              = "gp3"
  snapshot_id       = aws_ebs_snapshot.nightly.id
}

data "aws_ebs_volume" "found" {
  most_recent = true

  filter {
    name   = "tag:Name"
    values = ["data"]
  }

  depends_on = [aws_ebs_volume.data, aws_volume_attachment.data]
}

output "found" {
  value = "${data.aws_ebs_volume.found.volume_type} ${data.aws_ebs_volume.found.iops} ${data.aws_ebs_volume.found.size}"
}
